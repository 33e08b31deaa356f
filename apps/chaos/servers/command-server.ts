import { open } from 'signalbox'
import { ServerProcess } from './server-process.js'

/** A server that the user's command line starts in the foreground. */
export class CommandServer extends ServerProcess {
  readonly #url: string

  /** @param url URL of the server for a box. */
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
