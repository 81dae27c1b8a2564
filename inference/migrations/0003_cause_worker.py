from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inference", "0002_priority_and_by_hand"),
    ]

    operations = [
        migrations.AlterField(
            model_name="preemption",
            name="cause",
            field=models.CharField(
                blank=True,
                choices=[
                    ("pressure", "Pressure"),
                    ("admission", "Admission"),
                    ("forced", "Forced"),
                    ("decode", "Decode"),
                    ("hand", "Hand"),
                    ("rotation", "Rotation"),
                    ("priority", "Priority"),
                    ("worker", "Worker"),
                    ("client", "Client"),
                ],
                max_length=16,
            ),
        ),
    ]
