# The layers of a network, as a table, as JSON and as a drawing.
. "$(dirname "$0")/../lib.sh"

run 0 inspect --model cifar-cnn
out_has "conv2d 3x3/1 32 relu"; out_has "1,250,858"; out_lacks "stored with them"
equal "$(grep -c . out)" 13
run 0 inspect --model N15-20 --json
equal "$(python3 -c 'import json; n = json.load(open("out")); print(n["params"], sum(l["params"] for l in n["layers"]))')" "272474 272474"
for model in cifar-resnet20 inception-v3 mnist-vae gru-notes efficientnet-b0 cifar-lrn noise-mlp; do
    run 0 inspect --model $model --svg $model.svg --quiet
    [ ! -s out ] || fail "$last: it should be quiet"
    run 0 inspect --model $model --json
    python3 - $model.svg <<'P' || fail "$last: not the drawing of it"
import json, sys, xml.dom.minidom as x
net = json.load(open("out"))
svg = x.parse(sys.argv[1])
layers = net["layers"]
assert len(svg.getElementsByTagName("rect")) == len(layers) + 1  # the input
assert len(svg.getElementsByTagName("path")) == len(layers) + sum("in2" in l for l in layers)
P
done
run 1 inspect --model cifar-cnn --svg gru-notes.svg; err_has "gru-notes.svg"; out_lacks "conv2d"
run 0 inspect --model cifar-cnn --svg gru-notes.svg --force
run 2 inspect; err_has "expected a data set, or --model"
run 2 inspect d --model cifar-cnn; err_has "expected a data set, or --model"
run 2 inspect d --svg d.svg; err_has "which --svg draws"
run 2 inspect --model cifar-cn; err_has "did you mean 'cifar-cnn'"
finish
