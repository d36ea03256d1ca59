package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// judges holds what is dear to make: the CEL environments and the decoders.
type judges struct {
	compiler authenticationcel.Compiler
	codecs   serializer.CodecFactory
}

func newJudges() *judges {
	synchronizeTokenIDVerifierForTest = true
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return &judges{
		compiler: authenticationcel.NewDefaultCompiler(),
		codecs:   serializer.NewCodecFactory(scheme, serializer.EnableStrict),
	}
}
