import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { root } from './pages.js'

/**
 * A copy of the checkout in a temporary folder, like a reader's clone, for commands that write files. Shares the
 * installed packages with the checkout.
 */
export class Clone implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))

  constructor() {
    for (const name of readdirSync(root)) {
      if (
        name === '.git' ||
        name === '.signalbox' ||
        name === '.interop' ||
        name === 'build-docs' ||
        name.startsWith('.setup.lock')
      )
        continue
      // Keeps the times, because the build would otherwise compile everything again.
      cpSync(join(root, name), join(this.path, name), {
        recursive: true,
        preserveTimestamps: true,
        // Skips the ORMs, which are installed next to their tests.
        filter: path => basename(path) !== 'node_modules',
      })
    }
    symlinkSync(join(root, 'node_modules'), join(this.path, 'node_modules'))
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/**
 * Replaces commands that the tests can't run as they are: `git clone` links to the copy, `npm install` and `npm pack`
 * only check their arguments, and scripts that would run these tests again or take minutes need only exist. The train
 * tracker runs for one day.
 */
export const shellPrelude = String.raw`
set -euo pipefail
clone=$PWD
tarball=signalbox-$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json).tgz

git() {
  if [ "$1" != clone ]; then command git "$@"; return; fi
  if [ "$#" -gt 2 ]; then ln -s "$clone" "$3"; else ln -s "$clone" "$(basename "$2" .git)"; fi
}

npm() {
  case $1 in
    install | i | ci) has_only_our_packages "$@" ;;
    pack) packs_the_clone "$@" ;;
    pkg) [ "$*" = 'pkg set type=module' ] ;;
    start) shift; [ "$#" -eq 0 ] || shift; command npm start --silent -- "$@" --days 1 ;;
    run) shift; if [ "$1" = mutex ]; then command npm run --silent "$@"; else has_script "$1"; fi ;;
    *) has_script "$1" ;;
  esac
}

npx() {
  if [ "$1" = signalbox ]; then shift; signalbox "$@"
  elif [ ! -e "$clone/node_modules/.bin/$1" ]; then echo "npx: this package has no command '$1'" >&2; return 1
  fi
}

signalbox() { node "$clone/dist/apps/signalbox.js" "$@"; }

package_lists() {
  node -e 'const [file, list, name] = process.argv.slice(1); process.exit(name in require(file)[list] ? 0 : 1)' \
    "$clone/package.json" "$@"
}

has_script() {
  package_lists scripts "$1" && return
  echo "npm: this package has no script '$1'" >&2
  return 1
}

packs_the_clone() {
  [ "$*" = 'pack ../signalbox' ] && echo "$tarball" && return
  echo "npm: '$*' does not pack the clone, which lies in ../signalbox" >&2
  return 1
}

has_only_our_packages() {
  shift
  local name
  for name in "$@"; do
    case $name in -* | signalbox | signalbox-conformance | signalbox-lockfile | signalbox-nestjs | signalbox-zookeeper | "./$tarball") continue ;; esac
    package_lists peerDependencies "$name" && continue
    echo "npm: '$name' is neither this package nor an optional peer of it" >&2
    return 1
  done
}
`
