import { readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { UnavailableError } from '../../src/errors.js'
import { ZooKeeper } from '../../src/zookeeper/index.js'
import { makeCertificate } from '../redis/certificate.js'
import { runProgram } from '../run-program.js'
import { freePort } from '../servers/free-port.js'
import { startZooKeeper } from '../servers/zookeeper.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

test('the client speaks TLS, and believes only whom it is told to', async () => {
  const { folder, certificate, key } = makeCertificate()
  const ca = readFileSync(certificate)
  const secure = await freePort()
  try {
    await using server = await startZooKeeper({
      config: [`secureClientPort=${secure}`, 'secureClientPortAddress=127.0.0.1'],
      properties: {
        'zookeeper.serverCnxnFactory': 'org.apache.zookeeper.server.NettyServerCnxnFactory',
        'zookeeper.ssl.keyStore.location': 'server.pem',
        'zookeeper.ssl.keyStore.type': 'PEM',
        'zookeeper.ssl.clientAuth': 'none',
      },
      files: { 'server.pem': `${readFileSync(key, 'utf8')}${ca.toString()}` },
    })
    const address = `127.0.0.1:${secure}`
    await using zk = await ZooKeeper.connect(address, { tls: { ca, servername: 'localhost' } })
    const data = Buffer.alloc(300_000, 'abc')
    await zk.create('/a', data)
    expect((await zk.getData('/a')).data.equals(data)).toBe(true)
    await using plain = await ZooKeeper.connect(server.address)
    expect((await plain.getData('/a')).stat.dataLength).toBe(data.length)
    const stranger = ZooKeeper.connect(address, { tls: {}, timeout: 500 })
    await expect(stranger).rejects.toThrow(UnavailableError)
    await expect(stranger).rejects.toThrow(/certificate/)
    await expect(ZooKeeper.connect(address, { timeout: 500 })).rejects.toThrow(UnavailableError)
    // Whom a URL believes is said when the process starts.
    const trusting = [`NODE_EXTRA_CA_CERTS=${certificate}`, process.execPath, '--input-type=module', '-e']
    const program = `
      import { open } from 'signalbox'
      const box = await open('zookeeper+tls://localhost:${secure}/app')
      await box.mutex('key').run(grant => console.log(grant.expiresIn() > 0))
      await box.close()`
    const { stdout } = await runProgram('env', [...trusting, program], { cwd: root, timeLimit: 30_000 })
    expect(stdout).toBe('true\n')
    expect(await zk.exists('/app/locks')).toBeDefined()
    await using named = await ZooKeeper.connect(`localhost:${secure}`, { tls: { ca } })
    expect(named.state).toBe('connected')
    const other = ZooKeeper.connect(address, { tls: { ca, servername: 'other.example' }, timeout: 500 })
    await expect(other).rejects.toThrow(/other\.example/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
