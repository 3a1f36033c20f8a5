# export: JPEG and PNG come back byte for byte, pixels as PNG with the same pixels.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 5 --quiet
run 0 convert d d.mrec --quiet
run 0 export d.mrec back; out_has "15 files"
cat d/train/*/*.jpg >want
cat back/train/*/*.jpg >got
same got want
equal "$(ls back/train | tr '\n' ' ')" "disc ring square "
run 1 export d.mrec back; err_has "--force"
run 0 export d.mrec back --force --json; equal "$(number files)" 15
run 0 convert d raw.mrec --store raw --quiet
run 0 export raw.mrec pixels
run 0 digest raw.mrec; cp out want
run 0 digest pixels; same out want
run 1 export nowhere x
finish
