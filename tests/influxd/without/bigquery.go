// github.com/bonitoo-io/go-sql-bigquery .

package bigquery

import "errors"

type Config struct{ ProjectID, Location string }

func ConfigFromConnString(string) (*Config, error) {
	return nil, errors.New("this build has no BigQuery")
}
