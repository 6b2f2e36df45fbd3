// A plugin host in Go, from the contract alone: of Outboard it imports only the code that contract.sh generates from proto/.
module outboard.dev/examples/powerdomains

go 1.26.0

require (
	google.golang.org/grpc v1.79.3
	outboard.dev/contract v0.0.0
)

require (
	golang.org/x/net v0.48.0 // indirect
	golang.org/x/sys v0.39.0 // indirect
	golang.org/x/text v0.32.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/grpc/cmd/protoc-gen-go-grpc v1.6.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

tool (
	google.golang.org/grpc/cmd/protoc-gen-go-grpc
	google.golang.org/protobuf/cmd/protoc-gen-go
)

replace outboard.dev/contract => ../../../build/examples/go/contract
