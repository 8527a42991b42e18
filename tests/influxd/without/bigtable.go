// cloud.google.com/go/bigtable .

package bigtable

import (
	"context"
	"errors"
	"time"

	"google.golang.org/api/option"
)

type (
	Client     struct{}
	Table      struct{}
	RowSet     any
	RowRange   struct{}
	Row        map[string][]ReadItem
	Filter     any
	ReadOption any
	Timestamp  int64
	ReadItem   struct {
		Row, Column string
		Timestamp   Timestamp
		Value       []byte
	}
)

func NewClient(context.Context, string, string, ...option.ClientOption) (*Client, error) {
	return nil, errors.New("this build has no Bigtable")
}
func (*Client) Close() error       { return nil }
func (*Client) Open(string) *Table { return nil }
func (*Table) ReadRows(context.Context, RowSet, func(Row) bool, ...ReadOption) error {
	return errors.New("this build has no Bigtable")
}
func (Timestamp) Time() time.Time                      { return time.Time{} }
func RowFilter(Filter) ReadOption                      { return nil }
func InfiniteRange(string) RowRange                    { return RowRange{} }
func PassAllFilter() Filter                            { return nil }
func SingleRow(string) RowSet                          { return nil }
func ChainFilters(...Filter) Filter                    { return nil }
func FamilyFilter(string) Filter                       { return nil }
func NewRange(string, string) RowRange                 { return RowRange{} }
func TimestampRangeFilter(time.Time, time.Time) Filter { return nil }
func PrefixRange(string) RowRange                      { return RowRange{} }
func LimitRows(int64) ReadOption                       { return nil }
