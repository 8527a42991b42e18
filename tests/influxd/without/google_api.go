// google.golang.org/api option

package option

import "google.golang.org/grpc"

type ClientOption any

func WithGRPCDialOption(grpc.DialOption) ClientOption { return nil }
func WithCredentialsJSON([]byte) ClientOption         { return nil }
