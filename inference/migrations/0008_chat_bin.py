from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inference", "0007_chat_tree")]

    operations = [
        migrations.AddIndex(
            model_name="chat",
            index=models.Index(
                condition=models.Q(("deleted_at", None), _negated=True),
                fields=["deleted_at"],
                name="deleted_chats",
            ),
        ),
    ]
