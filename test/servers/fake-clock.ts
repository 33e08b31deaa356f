import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reapedFolder } from '../../apps/chaos/servers/reaper.js'

let library: string | undefined

/** A wall clock that a server started with {@link environment} takes for the real one. Its monotonic clock stays true. */
export class FakeClock {
  readonly #file = join(reapedFolder('clock'), 'offset')

  constructor() {
    this.set(0)
  }

  /** Sets it so many milliseconds ahead of the true time, or behind it. */
  set(ahead: number): void {
    const microseconds = Buffer.alloc(8)
    microseconds.writeBigInt64LE(BigInt(ahead) * 1000n)
    // In place, because the server has mapped it.
    writeFileSync(this.#file, microseconds, { flag: existsSync(this.#file) ? 'r+' : 'w' })
  }

  /** What makes a program read this clock. @throws Error when there is no C compiler */
  get environment(): Readonly<Record<string, string>> {
    library ??= compiled()
    return { LD_PRELOAD: library, SIGNALBOX_CLOCK: this.#file }
  }
}

function compiled(): string {
  const target = join(reapedFolder('clock'), 'fake-clock.so')
  const source = join(import.meta.dirname, 'fake-clock.c')
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', target, source])
  return target
}
