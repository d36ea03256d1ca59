module kubeauthn.example/bench/load

go 1.22
