// github.com/vertica/vertica-sql-go .

package vertigo
