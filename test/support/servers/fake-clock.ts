import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { pause } from '../../../packages/conformance/src/time.js'

let library: string | undefined

/**
 * Clocks that replace the real ones in a program started with {@link environment}. Its monotonic clock stays true.
 */
export class FakeClock {
  readonly #file = join(readableFolder(), 'offsets')
  #ahead = 0
  #slept = 0

  constructor() {
    this.#write()
  }

  /** Sets the wall clock a number of milliseconds ahead of the true time, or behind it. */
  set(ahead: number): void {
    this.#ahead = ahead
    this.#write()
  }

  /**
   * Simulates that the machine sleeps for a number of milliseconds: all clocks but the monotonic one advance. The
   * machine is awake when the promise settles.
   */
  async sleep(duration: number): Promise<void> {
    this.#slept += duration
    this.#write()
    // No machine falls asleep and wakes up within a millisecond, and no program has to look for that more often.
    await pause(2)
  }

  #write(): void {
    const microseconds = Buffer.alloc(16)
    microseconds.writeBigInt64LE(BigInt(this.#ahead + this.#slept) * 1000n)
    microseconds.writeBigInt64LE(BigInt(this.#slept) * 1000n, 8)
    // In place, because the programs have mapped it.
    writeFileSync(this.#file, microseconds, { flag: existsSync(this.#file) ? 'r+' : 'w' })
  }

  /** Returns the environment variables that make a program read this clock. @throws Error if there is no C compiler */
  get environment(): Readonly<Record<string, string>> {
    library ??= compiled()
    return { LD_PRELOAD: library, SIGNALBOX_CLOCK: this.#file }
  }
}

function compiled(): string {
  const target = join(readableFolder(), 'fake-clock.so')
  const source = join(import.meta.dirname, 'fake-clock.c')
  execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', target, source])
  return target
}

/** Creates a folder that programs of other users can read, too. */
function readableFolder(): string {
  const folder = reapedFolder('clock')
  chmodSync(folder, 0o755)
  return folder
}
