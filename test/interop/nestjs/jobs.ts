import { Controller, Injectable, Module, Post } from '@nestjs/common'
import { Cron, ScheduleModule } from '@nestjs/schedule'
import type { Grant, Slot } from 'signalbox'
import { CurrentGrant, CurrentSlot, OncePerFleet } from 'signalbox-nestjs'
import { letGo, report } from './setting.js'

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

@Controller('migrate')
class Migration {
  @Post()
  @OncePerFleet('release 8', { name: 'migrate', lease: '1s' })
  async run(@CurrentSlot() slot?: Slot, @CurrentGrant() grant?: Grant): Promise<void> {
    ran('migrate', grant, slot)
    await letGo('migrate')
  }
}

@Module({
  imports: [ScheduleModule.forRoot()],
  controllers: [Migration],
  providers: [First, Second, Third],
})
export class JobsModule {}
