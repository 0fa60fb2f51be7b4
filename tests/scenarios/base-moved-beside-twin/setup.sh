git tag seen
sed -i 's/^old()/new()\n{\n\treturn 0;\n}\n\nold()/' a.txt
git commit -qam later
