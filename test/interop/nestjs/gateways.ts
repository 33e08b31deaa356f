import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Controller, Get, Module, Param, UseFilters } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import { Locked, SignalboxExceptionFilter } from 'signalbox-nestjs'
import { io } from 'socket.io-client'

@UseFilters(SignalboxExceptionFilter)
abstract class FilteredGateway {}

@WebSocketGateway()
class Gateway extends FilteredGateway {
  @SubscribeMessage('busy')
  @Locked('door', { wait: 0 })
  async busy(): Promise<void> {}

  @SubscribeMessage('invalid')
  @Locked('')
  async invalid(): Promise<void> {}
}

@Controller()
class GatewayController {
  constructor(private readonly host: HttpAdapterHost) {}

  /** Sends an event to the gateway as a client, and returns the reply. */
  @Get('gateway/:event')
  async received(@Param('event') event: string): Promise<unknown> {
    const server = this.host.httpAdapter.getHttpServer() as Server
    const socket = io(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    try {
      return await new Promise(resolve => {
        socket.on('exception', resolve)
        socket.emit(event)
      })
    } finally {
      socket.close()
    }
  }
}

@Module({ controllers: [GatewayController], providers: [Gateway] })
export class GatewaysModule {}
