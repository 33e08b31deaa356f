import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'

/**
 * Reads `+ pid` and `- pid` until its standard input ends. Then it kills the remaining processes and removes the
 * folder.
 */
const script = `
watched=
while read -r sign pid; do
  rest=
  for each in $watched; do [ "$each" = "$pid" ] || rest="$rest $each"; done
  watched=$rest
  [ "$sign" = - ] || watched="$watched $pid"
done
for each in $watched; do kill -9 "$each"; done
exec rm -rf -- "$1"
`

let reaper: { readonly folder: string; readonly input: Writable } | undefined

function theReaper() {
  if (reaper !== undefined) return reaper
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-servers-'))
  // Servers that run as another user have folders in this one.
  chmodSync(folder, 0o711)
  // Its own process group, so that an interrupt at the terminal does not end it before its work.
  const shell = spawn('sh', ['-c', script, 'sh', folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  // On Bun, this stream does not keep the process alive, and has no `unref`.
  const input = shell.stdin as Writable & { unref?(): void }
  input.unref?.()
  reaper = { folder, input }
  return reaper
}

/**
 * Ensures that a child does not outlive this process, however this process ends. A small shell waits for the end of its
 * input and then kills every child that was reported to it.
 */
export function reapLater(child: ChildProcess): void {
  const { input } = theReaper()
  const pid = String(child.pid)
  input.write(`+ ${pid}\n`)
  child.once('exit', () => input.write(`- ${pid}\n`))
}

/** Creates a folder that is removed when this process ends. */
export function reapedFolder(name: string): string {
  return mkdtempSync(join(theReaper().folder, `${name}-`))
}
