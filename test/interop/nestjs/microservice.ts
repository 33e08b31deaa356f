import { Controller, Get, Module, Param, type INestApplication } from '@nestjs/common'
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices'
import { firstValueFrom } from 'rxjs'
import { Locked } from 'signalbox-nestjs'
import { setting } from './setting.js'

const options = { host: '127.0.0.1', port: setting.rpcPort! }

@Controller()
class MicroserviceController {
  @MessagePattern('busy')
  @Locked('door', { wait: 0 })
  async busy(): Promise<void> {}

  @MessagePattern('invalid')
  @Locked('')
  async invalid(): Promise<void> {}

  @MessagePattern('other')
  other(): never {
    throw new Error('of the application')
  }

  /** Returns the reply or the error that a client of the microservice receives. */
  @Get('microservice/:pattern')
  async received(@Param('pattern') pattern: string): Promise<unknown> {
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options })
    try {
      return await firstValueFrom(client.send(pattern, {}))
    } catch (error) {
      return error
    } finally {
      await client.close()
    }
  }
}

@Module({ controllers: [MicroserviceController] })
export class MicroserviceModule {}

/** Makes the application a hybrid application. The microservice inherits its global filters. */
export async function connectMicroservice(application: INestApplication): Promise<void> {
  application.connectMicroservice({ transport: Transport.TCP, options }, { inheritAppConfig: true })
  await application.startAllMicroservices()
}
