mkdir vendor
git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),vendor
git commit -qm submodule
