// A cache that forgets what was used least recently, and a loader of files that uses it.
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace files {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

template <typename Key, typename Value, typename Hash = std::hash<Key>>
class LruCache {
public:
    using Entry = std::pair<Key, Value>;
    using Evicted = std::function<void(const Key&, Value&&)>;

    explicit LruCache(std::size_t capacity, Evicted evicted = nullptr)
        : capacity_{capacity}, evicted_{std::move(evicted)} {
        if (capacity_ == 0) throw std::invalid_argument("a cache can't hold nothing");
    }

    LruCache(const LruCache&) = delete;
    LruCache& operator=(const LruCache&) = delete;
    ~LruCache() = default;

    [[nodiscard]] std::optional<Value> find(const Key& key) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = index_.find(key);
        if (found == index_.end()) return std::nullopt;
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
    }

    template <typename... Args>
    void emplace(const Key& key, Args&&... args) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (auto known = index_.find(key); known != index_.end()) {
            order_.erase(known->second);
            index_.erase(known);
        }
        order_.emplace_front(key, Value(std::forward<Args>(args)...));
        index_[key] = order_.begin();
        while (order_.size() > capacity_) evict();
    }

    std::size_t size() const noexcept { return index_.size(); }

private:
    void evict() {
        auto& [key, value] = order_.back();
        index_.erase(key);
        if (evicted_) evicted_(key, std::move(value));
        order_.pop_back();
    }

    std::size_t capacity_;
    Evicted evicted_;
    mutable std::mutex mutex_;
    std::list<Entry> order_;
    std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

/** Says how long its scope took, when the scope is left. */
class Stopwatch {
public:
    Stopwatch(std::string label, std::ostream& out = std::clog)
        : label_(std::move(label)), out_(out), start_(Clock::now()) {}

    ~Stopwatch() {
        using std::chrono::microseconds;
        const auto took = std::chrono::duration_cast<microseconds>(Clock::now() - start_);
        out_ << label_ << ": " << took.count() << " us" << (took > 1ms ? " (slow)" : "") << '\n';
    }

private:
    std::string label_;
    std::ostream& out_;
    Clock::time_point start_;
};

enum class Kind { text, image, other };

Kind kind_of(const std::string& path) {
    static const std::vector<std::pair<std::regex, Kind>> kinds = {
        {std::regex(R"(.*\.(txt|md|csv)$)", std::regex::icase), Kind::text},
        {std::regex(R"(.*\.(png|jpe?g)$)", std::regex::icase), Kind::image},
    };
    for (const auto& [pattern, kind] : kinds) {
        if (std::regex_match(path, pattern)) return kind;
    }
    return Kind::other;
}

std::shared_ptr<const std::string> load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " + path);
    std::ostringstream text;
    text << file.rdbuf();
    return std::make_shared<const std::string>(text.str());
}

}  // namespace files

int main(int argc, char* argv[]) {
    using Content = std::shared_ptr<const std::string>;
    std::size_t forgotten = 0;
    files::LruCache<std::string, Content> cache(
        4, [&forgotten](const std::string& path, Content&& content) {
            forgotten += content ? content->size() : 0;
            std::clog << "forgot " << path << '\n';
        });

    for (int i = 1; i < argc; ++i) {
        const std::string path{argv[i]};
        const files::Stopwatch watch("load " + path);
        try {
            auto content = cache.find(path).value_or(nullptr);
            if (!content) cache.emplace(path, content = files::load(path));
            switch (files::kind_of(path)) {
                case files::Kind::text: std::cout << content->substr(0, 80) << "...\n"; break;
                case files::Kind::image: std::cout << "<image>\n"; break;
                default: std::cout << static_cast<double>(content->size()) / 1024 << " KiB\n";
            }
        } catch (const std::exception& error) {
            std::cerr << "it didn't work: " << error.what() << std::endl;
        }
    }
    std::cout << cache.size() << " kept, " << forgotten << " bytes forgotten" << '\n';
    return forgotten > 0 ? 1 : 0;
}
