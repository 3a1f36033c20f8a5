# The confusion matrix: it adds up to the accuracy of evaluation, equals the matrix of the rows of `predict`, and is the same on any devices
# and in several processes; the worst classes are reported; impossible requests are refused before computing.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 20 --test-count 6 --size 12 --quiet
run 0 train d --model cifar-cnn-small --augment none --batch 10 --epochs 3 --seed 3 --quiet --checkpoint c
run 0 eval d --checkpoint c --json; accuracy=$(number val_accuracy) loss=$(number val_loss)
run 0 eval d --checkpoint c --json --confusion m.csv
equal "$(sed -n 's/.*"val_accuracy": \([0-9.]*\).*/\1/p' out) $(sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p' out)" "$accuracy $loss"
equal "$(text confusion)" m.csv
equal "$(grep -o '"taken_for_count"' out | wc -l | tr -d ' ')" 4
names=$(sed 1d m.csv | cut -d , -f 1 | tr '\n' ,)
equal "$(head -1 m.csv)" "class,${names}samples,accuracy"

# every sample is in it once; the diagonal holds the correct ones
awk -F , -v accuracy="$accuracy" 'NR > 1 { sum = 0; for (i = 2; i <= 5; i++) sum += $i; right += $NR; all += sum
    if (sum != $6 || $6 != 6 || ($NR / 6 - $7) ^ 2 > 1e-9) exit 1 }
    END { if (all != 24 || (right / all - accuracy) ^ 2 > 1e-9) exit 1 }' m.csv || fail "$last: the matrix does not add up: $(cat m.csv)"

# it equals the matrix of the predictions
run 0 predict d --checkpoint c --classes first
sed 1d out | awk -F , '{ print $3 "," $4 }' | sort | uniq -c | awk '{ print $2 "," $1 }' >pairs
awk -F , 'NR == 1 { for (i = 2; i <= 5; i++) name[i] = $i } NR > 1 { for (i = 2; i <= 5; i++) if ($i) print $1 "," name[i] "," $i }' m.csv |
    sort >cells
sort pairs >pairs.sorted
same cells pairs.sorted

# the table: worst first
run 0 eval d --checkpoint c --confusion m2.csv; same m.csv m2.csv
out_has "worst 4 of 4 classes"
sed -n '/^  class /,$p' out | sed 1d | awk '{ if ($2 < last) exit 1; last = $2 }' || fail "$last: the worst is not first"
for devices in cpu:2 cpu:3; do
    run 0 eval d --checkpoint c --devices $devices --batch 7 --confusion other.csv --force
    same m.csv other.csv
done
run 1 eval d --checkpoint c --confusion m.csv; err_has "m.csv"; out_lacks "loss"
run 0 eval d --checkpoint c --confusion m.csv --force
run 2 eval d --checkpoint c --confusion x.csv --draw x.png; err_has "--confusion and --draw"
run 1 eval d --checkpoint c --confusion x.csv --parts 4 --devices cpu:2; err_has "expected one part a device"; absent x.csv
run 0 train d --model mnist-vae --augment none --batch 10 --epochs 1 --quiet --checkpoint vae
run 2 eval d --checkpoint vae --confusion x.csv; err_has "mnist-vae has no classes"; absent x.csv
finish
