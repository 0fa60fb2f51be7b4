git tag seen
sed -i s/six/6/ a.txt
chmod +x a.txt
git commit -qam later
