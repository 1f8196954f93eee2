// Sets up spdlog: lines on stderr, as text or JSON.
#include "server/log.h"

#include <grpc/support/log.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace gyre {
namespace {

constexpr char kTimePattern[] = "%Y-%m-%dT%H:%M:%S.%eZ";

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// One JSON object a line. A pattern could not: it does not escape.
class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& entry, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(entry, time);
    const auto level = spdlog::level::to_string_view(entry.level);
    const nlohmann::ordered_json line = {
        {"time", std::string(time.data(), time.size())},
        {"level", std::string(level.data(), level.size())},
        {"message", std::string(entry.payload.data(), entry.payload.size())}};
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }

 private:
  spdlog::pattern_formatter time_{kTimePattern, spdlog::pattern_time_type::utc, ""};
};

}  // namespace

void SetUpLog(LogLevel level, LogFormat format) {
  auto logger = std::make_shared<spdlog::logger>("gyred", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (format == LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern(std::string(kTimePattern) + " %-7l %v", spdlog::pattern_time_type::utc);
  }
  logger->set_level(LevelOf(level));
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function([](gpr_log_func_args* said) { spdlog::debug("gRPC: {}", said->message); });
}

}  // namespace gyre
