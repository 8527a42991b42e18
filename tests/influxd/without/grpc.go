// google.golang.org/grpc .

package grpc

import (
	"context"
	"net"
)

type DialOption any

func WithContextDialer(func(context.Context, string) (net.Conn, error)) DialOption { return nil }
