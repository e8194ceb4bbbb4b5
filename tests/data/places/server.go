// Command server shortens links: it keeps them in memory and redirects to them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"time"
)

const maxBody = 1 << 16

var (
	errNotFound = errors.New("no such link")
	slugPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,30}$`)
)

// Link is a target with the number of times it was followed.
type Link struct {
	Slug    string    `json:"slug"`
	Target  string    `json:"target"`
	Hits    int       `json:"hits"`
	Created time.Time `json:"created,omitempty"`
}

type conflictError struct{ slug, target string }

func (e *conflictError) Error() string { return fmt.Sprintf("%q leads to %s", e.slug, e.target) }

type store[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

func newStore[K comparable, V any]() *store[K, V] {
	return &store[K, V]{values: make(map[K]V)}
}

func (s *store[K, V]) update(key K, change func(old V, ok bool) (V, error)) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.values[key]
	value, err := change(old, ok)
	if err != nil {
		return old, err
	}
	s.values[key] = value
	return value, nil
}

type server struct {
	links *store[string, Link]
	clock func() time.Time
	hits  chan string
}

func (s *server) create(w http.ResponseWriter, r *http.Request) {
	var link Link
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&link); err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("can't read the body: %w", err))
		return
	}
	if !slugPattern.MatchString(link.Slug) || !strings.HasPrefix(link.Target, "https://") {
		fail(w, http.StatusUnprocessableEntity, errors.New("slug or target isn't valid"))
		return
	}
	link.Created, link.Hits = s.clock(), 0
	saved, err := s.links.update(link.Slug, func(old Link, ok bool) (Link, error) {
		if ok && old.Target != link.Target {
			return old, &conflictError{slug: old.Slug, target: old.Target}
		}
		return link, nil
	})
	var conflict *conflictError
	switch {
	case errors.As(err, &conflict):
		fail(w, http.StatusConflict, err)
	case err != nil:
		fail(w, http.StatusInternalServerError, err)
	default:
		reply(w, http.StatusCreated, map[string]any{"link": saved, "path": "/" + saved.Slug})
	}
}

func (s *server) follow(w http.ResponseWriter, r *http.Request) {
	slug := strings.ToLower(strings.Trim(r.URL.Path, "/"))
	s.links.mu.RLock()
	link, ok := s.links.values[slug]
	s.links.mu.RUnlock()
	if !ok {
		fail(w, http.StatusNotFound, fmt.Errorf("%s: %w", slug, errNotFound))
		return
	}
	select {
	case s.hits <- slug:
	default: // counting mustn't hold up a visitor
	}
	http.Redirect(w, r, link.Target, http.StatusFound)
}

func (s *server) count(ctx context.Context) {
	for {
		select {
		case slug := <-s.hits:
			_, _ = s.links.update(slug, func(old Link, _ bool) (Link, error) {
				old.Hits++
				return old, nil
			})
		case <-ctx.Done():
			return
		}
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &server{links: newStore[string, Link](), clock: time.Now, hits: make(chan string, 64)}
	go s.count(ctx)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /links", s.create)
	mux.HandleFunc("GET /", s.follow)
	web := &http.Server{Addr: ":8080", Handler: mux, ReadTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = web.Shutdown(context.Background())
	}()
	if err := web.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Fatalf("server: %v", err)
	}
}
