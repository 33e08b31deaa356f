// Command redsync locks with go-redsync, as rounds.ts says what such a program is told and what it answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

const patience = 5000

type part struct {
	URL      string  `json:"url"`
	Name     string  `json:"name"`
	Lease    float64 `json:"lease"`
	Retry    float64 `json:"retry"`
	Hold     float64 `json:"hold"`
	Pause    float64 `json:"pause"`
	Excludes bool    `json:"excludes"`
}

type program struct {
	part
	locks *redsync.Redsync
	held  *redsync.Mutex
	going atomic.Bool
}

func milliseconds(count float64) time.Duration {
	return time.Duration(count * float64(time.Millisecond))
}

// monotonic reads the clock that all processes of the machine share.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

func say(format string, values ...any) {
	fmt.Printf(format+"\n", values...)
}

func (p *program) acquire(wait float64) (bool, error) {
	mutex := p.locks.NewMutex(p.Name,
		redsync.WithExpiry(milliseconds(p.Lease)),
		redsync.WithRetryDelay(milliseconds(p.Retry)),
		redsync.WithTries(1+int(wait/p.Retry)))
	err := mutex.Lock()
	var taken *redsync.ErrTaken
	if errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) {
		return false, nil
	}
	p.held = mutex
	return err == nil, err
}

func (p *program) release() (bool, error) {
	released, err := p.held.Unlock()
	var taken *redsync.ErrTaken
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) {
		return false, nil
	}
	return released, err
}

func (p *program) round() error {
	if p.Excludes {
		if got, err := p.acquire(patience); !got || err != nil {
			return err
		}
	}
	from := monotonic()
	time.Sleep(milliseconds(p.Hold))
	to := monotonic()
	if p.Excludes {
		if _, err := p.release(); err != nil {
			return err
		}
	}
	say("inside %d %d", from, to)
	time.Sleep(milliseconds(rand.Float64() * p.Pause))
	return nil
}

func (p *program) rounds() error {
	for p.going.Load() {
		if err := p.round(); err != nil {
			return err
		}
	}
	say("stopped")
	return nil
}

func choose(isFirst bool, first, second string) string {
	if isFirst {
		return first
	}
	return second
}

func (p *program) carryOut(words []string) error {
	switch words[0] {
	case "acquire":
		wait, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return err
		}
		got, err := p.acquire(wait)
		if err != nil {
			return err
		}
		say(choose(got, "held", "busy"))
	case "release":
		released, err := p.release()
		if err != nil {
			return err
		}
		say(choose(released, "released", "lost"))
	case "rounds":
		return p.rounds()
	}
	return nil
}

func main() {
	p := &program{}
	if err := json.Unmarshal([]byte(os.Args[1]), &p.part); err != nil {
		panic(err)
	}
	var pools []redsyncredis.Pool
	for _, server := range strings.Split(p.URL[strings.Index(p.URL, "://")+3:], ",") {
		client := redis.NewClient(&redis.Options{Addr: server})
		if err := client.Ping(context.Background()).Err(); err != nil {
			panic(err)
		}
		pools = append(pools, goredis.NewPool(client))
	}
	p.locks = redsync.New(pools...)
	say("ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		words := strings.Fields(input.Text())
		if words[0] == "stop" {
			p.going.Store(false)
			continue
		}
		if words[0] == "rounds" {
			p.going.Store(true)
		}
		go func() {
			if err := p.carryOut(words); err != nil {
				say("failed %s", strings.ReplaceAll(err.Error(), "\n", " "))
			}
		}()
	}
}
