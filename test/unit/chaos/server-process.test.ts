import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'

/** A server whose port is taken. Its process ends, and the other server answers. */
class Superseded extends ServerProcess {
  constructor() {
    const folder = reapedFolder('superseded')
    super({ program: 'sh', argv: ['-c', 'exit 1'], folder, files: {}, debianPackage: 'dash' })
  }

  protected async answers(): Promise<void> {
    while (this.isRunning) await sleep(1)
  }
}

test('an answer that another server gives starts nothing', async () => {
  await using server = new Superseded()
  await expect(server.start()).rejects.toThrow(/^sh ended/)
})
