// github.com/uber/athenadriver go

package athenadriver
