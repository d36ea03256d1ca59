// etcd as its own release builds it: Debian's is too old for kube-apiserver's watch cache.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
