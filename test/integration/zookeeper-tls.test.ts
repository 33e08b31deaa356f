import { readFileSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { UnavailableError } from '../../src/errors.js'
import { ZooKeeper } from '../../src/zookeeper/index.js'
import { makeCertificate } from '../redis/certificate.js'
import { freePort } from '../servers/free-port.js'
import { startZooKeeper } from '../servers/zookeeper.js'

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
  } finally {
    rmSync(folder, { recursive: true })
  }
})
