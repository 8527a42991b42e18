// github.com/influxdata/influxdb-iox-client-go .

package influxdbiox

type ColumnType int
