# Beginning with weights from elsewhere, and frozen layers: files with our names and torchvision's, other runs, a new head; round trips bit
# for bit; mismatches are named; a resumed run remembers its frozen layers. weights.py makes the files.
. "$(dirname "$0")/../lib.sh"
python=$(command -v python3) || skip "no Python 3"
judge() { "$python" -B "$here/train/weights.py" "$@" >seen 2>&1 || fail "$last: weights.py $*: $(tail -1 seen)"; }
# begin STATUS DATA MODEL ARGUMENT...: a run whose only step changes nothing: the way of a file through a checkpoint.
begin() {
    wanted=$1 data=$2 model=$3
    shift 3
    run "$wanted" train "$data" --model "$model" --augment none --batch 6 --max-steps 1 --freeze backbone --optimizer sgd --lr 1e-30 \
        --weight-decay 0 --quiet "$@"
}

run 0 synth d --classes 3 --count 8 --size 32 --quiet
run 0 train d --model cifar-resnet20 --augment none --batch 6 --epochs 2 --seed 3 --lr 0.01 --quiet --checkpoint a
for ending in safetensors npz; do
    run 0 export-weights a "a.$ending"
    begin 0 d cifar-resnet20 --init "a.$ending" --checkpoint "from-$ending"
    out_has "init     a.$ending: 107 of 107 tensors, our own names"
    out_has "frozen   backbone: 42 of 43 layers with parameters"
    run 0 export-weights "from-$ending" "back.$ending"
    same "a.$ending" "back.$ending"
done
begin 0 d cifar-resnet20 --init a --checkpoint from-run --json # a run of the same model
grep -q '"init": "a", "init_names": "own", "init_taken": 107, "init_left": 0, "init_unused": 0' out || fail "$last: $(head -1 out)"
run 0 export-weights from-run run.npz; same run.npz a.npz

# other classes: the last layer begins anew, and that is said
run 0 synth five --classes 5 --count 8 --size 32 --quiet
begin 0 five cifar-resnet20 --init a.npz --checkpoint five-run
err_has "a.npz: not taken: "; err_has "begins anew: the file has 3 classes, this network 5"
err_has "a.npz: in the file and not used: "; out_has "init     a.npz: 105 of 107 tensors"
begin 0 d cifar-resnet20 --init a.npz --init-skip head,0
err_has "not taken: 0/conv2d/weights, "; out_has "104 of 107 tensors"
begin 2 d cifar-resnet20 --init-skip head; err_has "--init-skip needs --init"

# torchvision's names, with its counters; what does not fit
run 0 train d --model resnet18 --augment none --batch 4 --max-steps 1 --quiet --checkpoint r
run 0 export-weights r r.safetensors --names torchvision
judge edit r.safetensors theirs.safetensors add=bn1.num_batches_tracked: add=extra.weight:2x3
begin 0 d resnet18 --init theirs.safetensors --checkpoint r2
out_has "102 of 102 tensors, torchvision's names"
err_has "not used: extra.weight"; err_has "not used: 1 num_batches_tracked"
run 0 export-weights r2 r2.safetensors --names torchvision; same r2.safetensors r.safetensors
judge edit r.safetensors half.safetensors type=conv1.weight:F16 type=fc.weight:F64
begin 0 d resnet18 --init half.safetensors
judge edit r.safetensors bad.safetensors drop=layer3.0.bn1.running_var
begin 1 d resnet18 --init bad.safetensors --checkpoint none; absent none
err_has "bad.safetensors: it has no layer3.0.bn1.running_var, which network resnet18 needs for layer "
judge edit r.safetensors bad.safetensors shape=layer1.0.conv1.weight:64x64x3x4
begin 1 d resnet18 --init bad.safetensors
err_has "layer1.0.conv1.weight is 64 x 64 x 3 x 4: expected 64 x 64 x 3 x 3"
judge edit r.safetensors bad.safetensors type=conv1.weight:I64
begin 1 d resnet18 --init bad.safetensors; err_has "conv1.weight is of type I64: expected numbers of type F32"
judge edit r.safetensors bad.safetensors fill=fc.bias:nan
begin 1 d resnet18 --init bad.safetensors; err_has "fc.bias has a number that is not finite"
begin 1 d resnet18 --init a.npz; err_has "0/conv2d/weights is 16 x 3 x 3 x 3: expected 64 x 7 x 7 x 3"
head -c 100000 r.safetensors >cut.safetensors
begin 1 d resnet18 --init cut.safetensors; err_has "cut.safetensors: "
begin 1 d resnet18 --init a; err_has "is of model cifar-resnet20: expected resnet18"
begin 1 d resnet18 --init nowhere.npz; err_has "nowhere.npz"

# a run that is stopped and resumed keeps its frozen layers without the option; one command line does both
set -- --model cifar-resnet20 --augment none --batch 6 --epochs 2 --seed 4 --lr 0.01 --quiet --json
run 0 train d "$@" --init a.npz --freeze 0-40 --checkpoint whole; weights=$(text weights)
run 0 train d "$@" --init a.npz --freeze 0-40 --checkpoint parts --resume --max-steps 4
err_has "starting from the beginning"
run 0 train d --checkpoint parts --resume --init a.npz --json --quiet; equal "$(text weights)" "$weights"
grep -q '"freeze": "0-40"' out || fail "$last: the frozen layers are not remembered"
run 0 train d "$@" --init a.npz --freeze 0-40 --devices cpu:2 --parts 4 --checkpoint two; two=$(text weights)
run 0 train d "$@" --init a.npz --freeze 0-40 --devices cpu:3 --parts 4; equal "$(text weights)" "$two"
run 0 train d "$@" --init a.npz --freeze 0-40 --max-steps 4 --checkpoint changed
run 2 train d --checkpoint changed --resume --freeze none --quiet
err_has "--freeze: the checkpoint was trained with 0-40, found none"
run 0 train d --checkpoint changed --resume --freeze none --override --quiet --json
grep -q '"freeze": null, "frozen_parameters": 0' out || fail "$last: it is still frozen"
run 2 train d "$@" --freeze 1; err_has "layer 1 (batch_norm) is frozen, and layers before it are trained"
run 2 train d "$@" --freeze 0-; err_has "nothing would be trained"
run 2 train d "$@" --freeze nowhere; err_has "no block and no kind of layer of that name"
finish
