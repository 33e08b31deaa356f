import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DATABASE } from '../../../src/engines/file/folder.js'
import { builtProgram } from '../built-program.js'

/** A process that is stopped while it holds the write lock of the database in a folder. */
export class StoppedWriter {
  readonly #child: ChildProcess
  readonly #end: Promise<unknown>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#end = once(child, 'exit')
  }

  /** Resolves when it has the lock. After that, it only stops. */
  static async start(folder: string): Promise<StoppedWriter> {
    const program = builtProgram('test/support/file/stopped-writer.process.js')
    const child = spawn(process.execPath, [program, join(folder, DATABASE)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const writer = new StoppedWriter(child)
    await once(child.stdout, 'data')
    return writer
  }

  /** Lets it end its transaction, even if it has not stopped yet. */
  goOn(): void {
    // A signal to continue has no effect before the process stops, so it is sent until the process ends.
    const again = setInterval(() => this.#child.kill('SIGCONT'), 20)
    void this.#end.then(() => clearInterval(again))
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#end
  }
}
