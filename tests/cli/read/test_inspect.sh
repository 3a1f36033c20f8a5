# inspect: the contents of a data set and of one record.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 4 --quiet
run 0 convert d d.mrec --quiet
run 0 inspect d.mrec
out_has "samples   12"
out_has "classes   3: disc, ring, square"
out_has "image: image  (the picture)"
out_has "label: int  (the label)"
out_has '"store": "jpeg"'
run 0 inspect d.mrec --json
equal "$(text format)" mrec
equal "$(number samples)" 12
equal "$(number file_bytes)" "$(wc -c <d.mrec | tr -d ' ')"
run 0 inspect d; out_has "format    folder"; out_has "--split test"
run 0 inspect d --split test; out_has "samples   3"
run 0 inspect d.mrec --record 5
out_has "label     int 1 (ring)"
out_has "32 x 32 pixels, 3 channels of 8 bits"
run 0 inspect d.mrec --record 11 --json; equal "$(number width)" 32
run 2 inspect d.mrec --record 12; err_has "expected 0 to 11, found 12"
run 1 inspect nowhere; err_has "nowhere"
head -c 5000 d.mrec >cut.mrec
run 1 inspect cut.mrec; err_has "cut.mrec"
finish
