git tag seen
sed -i 's/three/three /' a.txt
git commit -qam later
