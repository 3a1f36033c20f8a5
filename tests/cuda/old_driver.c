/* A driver of long ago: it has none of the functions. */
int mrt_old_driver(void);
int mrt_old_driver(void) { return 1; }
