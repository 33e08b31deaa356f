import { open } from 'signalbox'
import { ServerProcess } from './server-process.js'

/** A server that a command line of the user's starts, in the foreground. */
export class CommandServer extends ServerProcess {
  readonly #url: string

  /** @param url by which a box finds it. */
  constructor(command: string, url: string) {
    super({
      program: 'sh',
      argv: ['-c', `exec ${command}`],
      folder: process.cwd(),
      files: {},
      debianPackage: 'dash',
    })
    this.#url = url
  }

  protected async answers(): Promise<void> {
    const box = await open(this.#url)
    await box.close()
  }
}
