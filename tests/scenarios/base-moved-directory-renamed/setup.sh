mkdir dir
for n in 1 2 3; do seq 1 9 | sed "s/^/$n /" > dir/$n.txt; done
echo b > b.txt
git add .
git commit -qm more
git tag seen
git mv dir other
git commit -qam later
