sed -i s/five/fuenf/ a.txt
git commit -qam later
