/* A driver of long ago: it lacks all functions. */
int mrt_old_driver(void);
int mrt_old_driver(void) { return 1; }
