sed -i s/two/zwei/ a.txt
git commit -qam later
