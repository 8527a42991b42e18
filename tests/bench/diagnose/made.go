// A made program in Go: made KIND SECONDS VARIANT PORT. What leaks is in the lines that end with LEAK.
package main

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strconv"
	"time"
)

type node struct {
	behind *node
	load   []byte
}

var (
	kept     [][]byte
	table    = map[string][]byte{}
	chain    *node
	handlers []func() int
	numbers  [][]float64
	cache    = map[int][]byte{}
	pins     []*[]byte
)

func busy(n int) {
	for each := 0; each < 40; each++ {
		cache[(n*40+each)%1000] = bytes.Repeat([]byte("x"), 2000+each)
	}
}

func leak(variant int, n int) {
	for each := 0; each < 20; each++ {
		switch variant % 6 {
		case 0:
			kept = append(kept, make([]byte, 1000)) // LEAK
		case 1:
			table[fmt.Sprintf("%d-%d", n, each)] = make([]byte, 1000) // LEAK
		case 2:
			chain = &node{chain, make([]byte, 1000)} // LEAK
		case 3:
			load := make([]byte, 1000) // LEAK
			handlers = append(handlers, func() int { return len(load) })
		case 4:
			kept = append(kept, []byte(fmt.Sprintf("%0*d", 1000, each))) // LEAK
		default:
			numbers = append(numbers, make([]float64, 128)) // LEAK
		}
	}
}

func level(mib float64) {
	wanted := int(mib*1048576) / 4000
	for len(kept) < wanted {
		kept = append(kept, make([]byte, 4000))
	}
	for n := wanted; n < len(kept); n++ {
		kept[n] = nil
	}
	kept = kept[:wanted]
}

func main() {
	kind := os.Args[1]
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	variant, _ := strconv.Atoi(os.Args[3])
	go http.ListenAndServe("127.0.0.1:"+os.Args[4], nil)
	begin := time.Now()
	for n := 1; ; n++ {
		part := time.Since(begin).Seconds() / seconds
		switch {
		case part > 2:
			return
		case kind == "leak":
			busy(n)
			leak(variant, n)
		case kind == "cache":
			busy(n)
			level(math.Min(part/0.5, 1) * 16)
		case kind == "warm-up":
			busy(n)
			level(16 * (1 - math.Exp(-part/0.05)))
		case kind == "load":
			level(4 + 16*(0.5+0.5*math.Sin(2*math.Pi*math.Mod(float64(time.Now().UnixMicro())*1e-6, seconds*10)/seconds*1.3)))
		case kind == "retention":
			if part < 0.35 {
				for each := 0; each < 200; each++ {
					kept = append(kept, make([]byte, 800))
				}
			} else {
				kept = nil
			}
		case kind == "fragmentation":
			size := 64 + 64*(int(part*25)%20)
			for each := 0; each < 40000/size+1; each++ {
				block := make([]byte, size)
				if each%16 == 0 {
					pins = append(pins, &block)
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
