git tag seen
sed -i s/three/drei/ a.txt
git commit -qam later
