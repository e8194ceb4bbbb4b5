# A formula for a tap of one's own: `Formula/foregram.rb` there. A release adds the tag's revision.
class Foregram < Formula
  desc "Local code completion for editors, from a model on your CPU"
  homepage "https://github.com/foregram/foregram"
  url "https://github.com/foregram/foregram.git", tag: "v0.1.0"
  license "Apache-2.0"
  head "https://github.com/foregram/foregram.git", branch: "main"

  depends_on "uv" => :build
  depends_on "python@3.13"

  preserve_rpath # wheels hold libraries whose names are too short to rewrite

  # Every library has a hash that we know, and so has the small model.
  def install
    system "uv", "venv", "--python", which("python3.13"), libexec
    pip = ["uv", "pip", "install", "--python", libexec, "--no-deps"]
    system(*pip, "--require-hashes", "--only-binary", ":all:", "--requirement",
           "editor_plugins/vscode/requirements/locked.txt")
    system(*pip, ".")
    bin.install_symlink libexec/"bin/foregram"
    generate_completions_from_executable(bin/"foregram", "completions")
    (man1/"foregram.1").write Utils.safe_popen_read(bin/"foregram", "completions", "man")
  end

  def caveats
    "For an NVIDIA GPU, install it without Homebrew: uv tool install 'foregram[gpu]'"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/foregram --version")
  end
end
