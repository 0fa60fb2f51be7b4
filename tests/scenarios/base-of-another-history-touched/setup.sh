git checkout -q --orphan stray
sed -i s/three/drei/ a.txt
git commit -qam stray
git checkout -q main
