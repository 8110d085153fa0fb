// The program itself: what it links, its exit codes, and what it says when kvasir-remote is not there.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ran {
  int code = -1;
  std::string text;  // both streams
};

Ran RunShell(const std::string& command) {
  Ran ran;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ran.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

const std::string kProgram = KVASIR_BIN_DIR "/kvasir";

// An answer that nobody can read is no success, whatever it was.
TEST(KvasirBinary, SaysWhereItsAnswerCouldNotBeWritten) {
  for (const char* command : {" version", " models list --output json", " --help"}) {
    const Ran full = RunShell("(" + kProgram + command + " >/dev/full)");
    EXPECT_EQ(full.code, 4) << command;
    EXPECT_THAT(full.text, HasSubstr("could not be written to the standard output"));
    EXPECT_EQ(RunShell("(" + kProgram + command + " >&-)").code, 4) << command;
  }
}

TEST(KvasirBinary, LoadsNeitherGrpcNorProtobuf) {
  const Ran libraries = RunShell("ldd " + kProgram);
  ASSERT_EQ(libraries.code, 0) << libraries.text;
  EXPECT_THAT(libraries.text, HasSubstr("libc.so"));
  EXPECT_THAT(libraries.text, Not(HasSubstr("grpc")));
  EXPECT_THAT(libraries.text, Not(HasSubstr("proto")));
  EXPECT_THAT(libraries.text, Not(HasSubstr("glog")));
}

TEST(KvasirBinary, ExitCodes) {
  EXPECT_EQ(RunShell(kProgram + " version").code, 0);
  EXPECT_EQ(RunShell(kProgram + " validate --target demo-target --tp 3").code, 1);
  EXPECT_EQ(RunShell(kProgram + " plan").code, 2);
  EXPECT_EQ(RunShell(kProgram + " plan --no-save --target kimi-k3 --kv-memory 1MiB").code, 3);
}

TEST(KvasirBinary, SaysWhereKvasirRemoteShouldBe) {
  const fs::path folder = fs::path(::testing::TempDir()) / "kvasir binary alone";
  fs::create_directories(folder);
  fs::copy_file(kProgram, folder / "kvasir", fs::copy_options::overwrite_existing);
  const Ran alone = RunShell("'" + (folder / "kvasir").string() + "' status");
  EXPECT_EQ(alone.code, 4);
  EXPECT_THAT(alone.text, HasSubstr((folder / "kvasir-remote").string()));
  fs::remove_all(folder);
}

TEST(KvasirBinary, PipedOutputHasNoColour) {
  EXPECT_THAT(RunShell("TERM=xterm " + kProgram + " validate --target demo-target").text,
              Not(HasSubstr("\x1b[")));
}

}  // namespace
}  // namespace kvasir
