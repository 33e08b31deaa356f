import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'

/** Reads `+ pid` and `- pid` until the other end of its standard input is gone, and kills what is left. */
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
  // Servers that run as another user have folders in it.
  chmodSync(folder, 0o711)
  // A group of its own, so that an interrupt at the terminal does not end it before its work.
  const shell = spawn('sh', ['-c', script, 'sh', folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  // On Bun, this stream keeps no process alive, and has no such method.
  const input = shell.stdin as Writable & { unref?(): void }
  input.unref?.()
  reaper = { folder, input }
  return reaper
}

/**
 * Sees to it that a child doesn't outlive this process, however this process ends: a small shell waits for the end of
 * its input and then kills every child that was reported to it.
 */
export function reapLater(child: ChildProcess): void {
  const { input } = theReaper()
  const pid = String(child.pid)
  input.write(`+ ${pid}\n`)
  child.once('exit', () => input.write(`- ${pid}\n`))
}

/** A new folder that vanishes with this process. */
export function reapedFolder(name: string): string {
  return mkdtempSync(join(theReaper().folder, `${name}-`))
}
