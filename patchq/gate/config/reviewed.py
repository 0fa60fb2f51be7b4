"""What runs by itself, or tells others what to run: a change of it asks for review.

Nobody has to start such a file: a person opens the folder, an agent reads its instructions, a
package is installed, a push reaches a forge.  So a batch that changes one never lands unseen.  A
list is never complete; `paths.review` of the configuration extends it, and `!pattern` takes out.
"""

from __future__ import annotations

from patchq.core.model.frozen import frozen


@frozen
class RunningFiles:
    """Files that are run without anybody asking for it: `who` does so; gitignore patterns."""

    who: str
    patterns: tuple[str, ...]


RUNNING = (
    RunningFiles(
        "continuous integration runs it",
        (
            "**/.github/workflows/", "**/.github/actions/", "**/.gitea/", "**/.forgejo/",
            "action.yml", "action.yaml", ".gitlab-ci.yml", "*.gitlab-ci.yml", ".gitlab-ci/",
            ".gitlab/", "Jenkinsfile*", "*.jenkinsfile", ".jenkins/", ".circleci/",
            "azure-pipelines*.yml", "azure-pipelines*.yaml", ".azure-pipelines/", ".azuredevops/",
            ".pipelines/", "bitbucket-pipelines.yml", ".travis.yml", "appveyor.yml",
            ".appveyor.yml", ".drone.yml", ".drone.yaml", ".drone.star", ".drone.jsonnet",
            ".woodpecker.yml", ".woodpecker.yaml", ".woodpecker/", ".buildkite/", ".ci/",
            ".cirrus.yml", ".cirrus.star", ".semaphore/", ".teamcity/", "bamboo-specs/",
            "buildspec*.yml", "cloudbuild*.yaml", "cloudbuild*.yml", ".build.yml", ".builds/",
            ".tekton/", "codefresh.yml", ".codefresh/", "wercker.yml", ".scrutinizer.yml",
            ".zuul.yaml", ".zuul.d/", "zuul.yaml", "zuul.d/", ".packit.yaml", ".sourcehut/",
            "screwdriver.yaml", ".harness/", "Earthfile", ".copr/",
        ),
    ),
    RunningFiles(
        "a forge's bots follow it",
        (
            "**/.github/dependabot.yml", "**/.github/dependabot.yaml", "renovate.json",
            "renovate.json5", ".renovaterc", ".renovaterc.json", ".renovaterc.json5",
            "**/.github/renovate.json*", "**/.github/settings.yml", "**/.github/mergify.yml",
            ".mergify.yml", ".mergify/", "bors.toml", "CODEOWNERS", "/OWNERS", "OWNERS_ALIASES",
            ".probot/", "**/.github/labeler.yml", "**/.github/release.yml", ".releaserc*",
            "release.config.*", ".goreleaser.y*ml", "netlify.toml", "vercel.json", "now.json",
            "fly.toml", "render.yaml", "Procfile", "railway.json", "railway.toml", "wrangler.toml",
            "wrangler.json*", "firebase.json", "amplify.yml",
        ),
    ),
    RunningFiles(
        "git runs or obeys it",
        (
            "/hooks/", ".githooks/", ".hooks/", ".husky/", ".huskyrc*", ".pre-commit-config.yaml",
            ".pre-commit-hooks.yaml", "lefthook*.yml", "lefthook*.yaml", "lefthook*.toml",
            "lefthook*.json", ".lefthook/", ".lefthook-local/", ".overcommit.yml", ".lintstagedrc*",
            "lint-staged.config.*", ".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig",
        ),
    ),
    RunningFiles(
        "tests and interpreters run it before anything else",
        (
            "conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", "nose.cfg",
            "sitecustomize.py", "usercustomize.py", "*.pth", ".pythonrc*", ".pythonstartup",
            ".coveragerc", "jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.setup.*",
            "vitest.workspace.*", "karma.conf.*", ".mocharc*", "playwright.config.*",
            "cypress.config.*", "wdio.conf.*", "babel.config.*", ".babelrc*", ".rspec",
            "spec_helper.rb", "rails_helper.rb", ".irbrc", ".pryrc", ".Rprofile", ".Renviron",
            "phpunit.xml*", ".user.ini", ".psqlrc", ".sqliterc", ".gdbinit", ".lldbinit",
            ".lldbinit-*", ".iex.exs", ".ghci", ".ocamlinit",
        ),
    ),
    RunningFiles(
        "a build runs it",
        (
            "Makefile", "GNUmakefile", "*.mk", "Makefile.*", "justfile", ".justfile", "*.just",
            "Taskfile.y*ml", "Taskfile.dist.y*ml", "magefile.go", "Rakefile", "*.rake",
            "gulpfile.*", "Gruntfile.*", "/tasks.py", "fabfile.py", "dodo.py", "SConstruct",
            "SConscript", "wscript", "meson.build", "meson_options.txt", "CMakeLists.txt",
            "*.cmake", "CMakePresets.json", "/configure", "configure.ac", "build.rs", "build.zig",
            "build.zig.zon", "BUILD.bazel", "WORKSPACE.bazel", "MODULE.bazel", "MODULE.bazel.lock",
            ".bazelrc", "*.bzl", "BUCK", ".buckconfig", "pants.toml", "webpack.config.*",
            "vite.config.*", "rollup.config.*", "esbuild.config.*", "next.config.*",
            "nuxt.config.*", "svelte.config.*", "astro.config.*", "postcss.config.*",
            "tailwind.config.*", "metro.config.*", "turbo.json", "nx.json", "lerna.json",
            "rush.json", "angular.json", "craco.config.*", "eslint.config.*", ".eslintrc*",
            ".prettierrc*", "prettier.config.*", ".stylelintrc*", "stylelint.config.*",
            "commitlint.config.*", ".commitlintrc*", "build.xml", "build.sbt", "project/*.sbt",
            "project/plugins.sbt", "build.sc", "*.csproj", "*.fsproj", "*.vbproj", "*.props",
            "*.targets", "nuget.config", "*.sln", "Directory.Build.*", "global.json",
            "dotnet-tools.json",
        ),
    ),
    RunningFiles(
        "what is installed, and from where, is said there",
        (
            "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
            "pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", "bunfig.toml",
            ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases/", ".yarn/plugins/",
            ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", "deno.json", "deno.jsonc", "deno.lock",
            "jsr.json", "import_map.json", "bower.json", ".bowerrc", "requirements*.txt",
            "requirements*.in", "constraints*.txt", "requirements/*.txt", "requirements/*.in",
            "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "Pipfile.lock", "poetry.lock",
            "poetry.toml", "uv.lock", "uv.toml", "pdm.lock", "pdm.toml", "pixi.toml", "pixi.lock",
            "pylock*.toml", "pip.conf", "pip.ini", "hatch.toml", "environment.yml",
            "environment.yaml", "conda-lock.yml", ".condarc", "MANIFEST.in", "go.mod", "go.sum",
            "go.work", "go.work.sum", "**/vendor/modules.txt", "Cargo.toml", "Cargo.lock",
            ".cargo/", "rust-toolchain", "rust-toolchain.toml", "Gemfile", "Gemfile.lock",
            "gems.rb", "gems.locked", "*.gemspec", ".bundle/", "composer.json", "composer.lock",
            "/auth.json", "pom.xml", ".mvn/", "mvnw", "mvnw.cmd", "build.gradle",
            "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties",
            "gradle.lockfile", "gradlew", "gradlew.bat", "**/gradle/wrapper/", "init.gradle*",
            "mix.exs", "mix.lock", "rebar.config", "rebar.lock", "Package.swift",
            "Package.resolved", "Podfile", "Podfile.lock", "Cartfile*", "packages.lock.json",
            "packages.config", "paket.*", "flake.nix", "flake.lock", "shell.nix", "default.nix",
            "pubspec.yaml", "pubspec.lock", "conanfile.*", "vcpkg.json", "dub.json", "dub.sdl",
            "shard.yml", "shard.lock", "stack.yaml", "stack.yaml.lock", "cabal.project*", "*.cabal",
            "elm.json", "opam", "*.opam", "/DESCRIPTION", "renv.lock", "Project.toml",
            "Manifest.toml", "Brewfile*",
        ),
    ),
    RunningFiles(
        "a shell or a version manager obeys it when the directory is entered",
        (
            ".envrc", ".mise.toml", "mise.toml", ".mise/", ".config/mise/", ".mise.*.toml",
            "mise.*.toml", ".rtx.toml", ".tool-versions", ".nvmrc", ".node-version",
            ".python-version", ".ruby-version", ".java-version", ".sdkmanrc", ".terraform-version",
            ".autoenv*", ".bashrc", ".bash_profile", ".zshrc", ".zshenv", ".profile", ".tmux.conf",
            ".tmuxinator.yml", "devbox.json", "devbox.lock", "devenv.*", ".flox/", ".hermit/",
            "*.code-workspace",
        ),
    ),
    RunningFiles(
        "editors run it when the folder is opened",
        (
            "**/.vscode/", ".idea/", "*.iml", ".fleet/", ".zed/", ".nvim.lua", ".nvimrc", ".exrc",
            ".vimrc", ".gvimrc", ".vim/", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el",
            "*.sublime-project", "*.sublime-build", ".helix/", ".kakrc", ".vs/", ".theia/",
            ".atom/", ".nova/", ".replit", "replit.nix", ".gitpod.yml", ".gitpod/",
            ".devcontainer/", ".devcontainer.json", ".devfile.yaml", "devfile.yaml", ".idx/",
            ".stackblitzrc", "sandbox.config.json", ".codesandbox/", ".project", ".settings/",
            "nbproject/", ".ipython/", "jupyter_*_config.*",
        ),
    ),
    RunningFiles(
        "agents take it for instructions or run it",
        (
            "AGENTS.md", "AGENTS.override.md", "AGENT.md", ".agents/", ".agent/", "CLAUDE.md",
            "CLAUDE.local.md", ".claude/", ".claude.json", ".mcp.json", "mcp.json", ".mcp/",
            "mcp_config.json", "GEMINI.md", ".gemini/", ".geminiignore", "CONVENTIONS.md",
            ".aider.conf.yml", ".aider.conf.yaml", ".aider*", ".codex/", "codex.md", ".cursor/",
            ".cursorrules", ".cursorignore", ".windsurf/", ".windsurfrules", ".codeium/",
            ".clinerules", ".clinerules/", ".cline/", ".clineignore", ".roo/", ".roorules*",
            ".roomodes", ".kilocode/", ".kilocodemodes", ".kilocoderules", ".continue/",
            ".continuerules", ".continuerc.json", "opencode.json", "opencode.jsonc", ".opencode/",
            ".amp/", ".augment/", ".augment-guidelines", ".augmentignore", ".junie/", ".kiro/",
            ".trae/", ".qwen/", "QWEN.md", ".crush.json", "crush.json", ".crush/", "CRUSH.md",
            ".goosehints", ".goose/", ".openhands/", ".openhands_instructions", ".plandex*/",
            ".sourcegraph/", ".cody/", ".tabnine/", ".amazonq/", ".q/", ".devin/", ".factory/",
            ".jules/", ".grok/", "GROK.md", "WARP.md", ".warp/", ".zencoder/", ".rules", ".ruler/",
            ".prompts/", "*.prompt.md", "*.instructions.md", "*.chatmode.md", "*.agent.md",
            "**/.github/copilot-instructions.md", "**/.github/instructions/", "**/.github/prompts/",
            "**/.github/chatmodes/", "**/.github/agents/", "**/.github/skills/", "SKILL.md",
            "llms.txt", ".cursorindexingignore", "replit.md", "copilot-setup-steps.yml",
            ".copilot/", ".firebender/", ".pearai/", ".void/",
        ),
    ),
    RunningFiles(
        "containers and services are made from it",
        (
            "Dockerfile*", "*.dockerfile", "Containerfile*", "compose.y*ml", "compose.*.y*ml",
            "docker-compose*.y*ml", "docker-bake.*", "podman-compose*.y*ml", "Vagrantfile",
            "*.nomad", "*.nomad.hcl", "skaffold.y*ml", "Tiltfile", "Chart.yaml", "Chart.lock",
            "kustomization.y*ml", "helmfile.y*ml", "*.service", "*.timer", "*.socket",
            "*.container", "*.quadlet", "*.desktop", "crontab", "crontab.*", "*.crontab",
            "supervisord.conf", "Singularity*", "apptainer.def", "entrypoint.sh",
            "docker-entrypoint*", "*.kube",
        ),
    ),
    RunningFiles(
        "infrastructure is made from it",
        (
            "*.tf", "*.tf.json", "*.tfvars", "*.tfvars.json", "*.tofu", "*.tofu.json",
            ".terraform.lock.hcl", ".terraformrc", "terragrunt.hcl", "*.pkr.hcl", "Pulumi.y*ml",
            "Pulumi.*.y*ml", "cdk.json", "serverless.y*ml", "serverless.ts", "samconfig.toml",
            "*.bicep", "*.bicepparam", "*.cfn.y*ml", "ansible.cfg", "playbook*.y*ml", "group_vars/",
            "host_vars/", "Puppetfile", "Berksfile*", "Policyfile*", "atlantis.yaml",
            ".atlantis.yaml", "spacelift.yml", ".spacelift/", "crossplane.yaml", "sst.config.*",
            "Acornfile",
        ),
    ),
)  # fmt: skip

REVIEW = tuple(pattern for files in RUNNING for pattern in files.patterns)


def who_runs(pattern: str) -> str | None:
    """Who runs what matches a pattern of the list; None for one of the configuration's own."""
    return next((files.who for files in RUNNING if pattern in files.patterns), None)
