git tag seen
mkdir new
echo other > new/b.txt
git add new
git commit -qam later
