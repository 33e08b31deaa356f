import { Injectable, Module } from '@nestjs/common'
import { Cron, ScheduleModule } from '@nestjs/schedule'
import type { Grant, Slot } from 'signalbox'
import { CurrentGrant, CurrentSlot, OncePerFleet } from 'signalbox-nestjs'
import { report } from './setting.js'

const EVERY_SECOND = '* * * * * *'

function ran(job: string, grant: Grant | undefined, slot: Slot | undefined): void {
  report({ job, slot: slot!.name, token: String(grant!.token) })
}

abstract class Named {
  @Cron(EVERY_SECOND)
  @OncePerFleet({ cron: EVERY_SECOND })
  async run(@CurrentSlot() slot?: Slot, @CurrentGrant() grant?: Grant): Promise<void> {
    ran(`${this.constructor.name} on ${grant!.keys.join()}`, grant, slot)
  }
}

@Injectable()
class First extends Named {}

@Injectable()
class Second extends Named {}

@Injectable()
class Third {
  @OncePerFleet({ cron: EVERY_SECOND }, { name: 'third' })
  @Cron(EVERY_SECOND)
  async run(@CurrentSlot() slot?: Slot, @CurrentGrant() grant?: Grant): Promise<void> {
    ran(`Third on ${grant!.keys.join()}`, grant, slot)
  }
}

@Module({ imports: [ScheduleModule.forRoot()], providers: [First, Second, Third] })
export class JobsModule {}
