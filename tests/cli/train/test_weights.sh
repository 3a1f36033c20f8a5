# Weights of a checkpoint as files that other programs read: the same numbers in every form, in torchvision's layouts, averages or
# not, whole or not at all. weights.py judges them without our code.
. "$(dirname "$0")/../lib.sh"
python=$(command -v python3) || skip "no Python 3"
judge() { "$python" -B "$here/train/weights.py" "$@" >seen 2>&1 || fail "$last: weights.py $*: $(tail -1 seen)"; }

run 0 synth d --classes 3 --count 6 --size 32 --quiet
run 0 train d --model cifar-resnet20 --augment none --batch 6 --epochs 3 --seed 3 --lr 0.01 --average 0.5 --quiet --checkpoint plain
checkpoint=$(ls plain/step-*9.mrck)

run 0 export-weights plain own.safetensors
out_has "own.safetensors: "; out_has "millrace's names"; out_has "the average of weights"
run 0 export-weights plain own.npz --json
equal "$(text weights) $(text names) $(text model)" "average own cifar-resnet20"
equal "$(number bytes)" "$(wc -c <own.npz | tr -d ' ')"
tensors=$(number tensors)
judge same own.safetensors own.npz
judge list own.npz; equal "$(wc -l <seen | tr -d ' ')" "$tensors"
grep -q '^0/conv2d/weights F32 16x3x3x3$' seen || fail "$last: no weights of the first layer: $(head -3 seen)"
run 0 export-weights "$checkpoint" again.safetensors; same own.safetensors again.safetensors
run 0 export-weights plain trained.npz --weights trained --json; equal "$(text weights)" trained
"$python" -B "$here/train/weights.py" same own.npz trained.npz >seen 2>&1 && fail "$last: the average is not the trained weights"

# nothing is replaced without --force, and a refused export leaves no file
cp own.npz before
run 1 export-weights plain own.npz; err_has "own.npz: it exists already"
same own.npz before
run 0 export-weights plain own.npz --weights trained --force; same own.npz trained.npz
run 2 export-weights plain w.pt; err_has "w.pt: expected a name that ends in .safetensors or .npz"; absent w.pt
run 1 export-weights plain w.npz --names torchvision; err_has "torchvision's names are known of resnet18, "; absent w.npz
err_has "not of cifar-resnet20"
run 1 export-weights nowhere w.npz; err_has "nowhere"
ln "$checkpoint" linked.npz
run 2 export-weights "$checkpoint" linked.npz --force; err_has "also the input"
[ -s linked.npz ] || fail "$last: the checkpoint was written over"
cp "$checkpoint" cut.mrck && printf x | dd of=cut.mrck bs=1 seek=60000 conv=notrunc 2>/dev/null
run 1 export-weights cut.mrck w.npz; err_has "cut.mrck"; absent w.npz; absent w.npz.part

# torchvision's names and layouts
run 0 train d --model resnet18 --augment none --batch 2 --max-steps 1 --quiet --checkpoint net
run 2 export-weights net w.npz --weights average; err_has "has no average of weights"; absent w.npz
run 0 export-weights net own18.npz
run 0 export-weights net torch.safetensors --names torchvision; out_has "torchvision's names"
run 0 export-weights net torch.npz --names torchvision
judge same torch.safetensors torch.npz
judge list torch.npz
sed -n 's/^resnet18 \([^ ]*\) .*/\1/p' "$here/../train/state/torchvision.txt" | sort >expected
cut -d ' ' -f 1 seen | sort >found
cmp -s expected found || fail "$last: other names than torchvision's: $(diff expected found | head -3)"
judge moved own18.npz torch.npz
finish
