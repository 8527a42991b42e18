// github.com/SAP/go-hdb driver

package driver

import (
	"errors"
	"math/big"
)

type Decimal big.Rat

func (*Decimal) Scan(any) error { return errors.New("this build has no SAP HANA") }
